// A scene of Count spheres, cones and meshes with textures, in unions that are cut.
#version 3.7;
global_settings { assumed_gamma 1 }
camera { location <0, 6, -14> look_at 0 }
light_source { <10, 20, -20> rgb 1 }
plane { y, -2 pigment { checker rgb 0.3, rgb 0.8 } }
#declare Stream = seed(20);
#declare Item = 0;
#while (Item < Count)
    #declare Place = <10 * rand(Stream) - 5, 4 * rand(Stream) - 2, 10 * rand(Stream) - 5>;
    #declare Colour = rgb <rand(Stream), rand(Stream), rand(Stream)>;
    #switch (mod(Item, 4))
        #case (0)
            sphere { Place, 0.2 pigment { Colour } finish { phong 0.6 } }
        #break
        #case (1)
            difference {
                box { -0.15, 0.15 }
                sphere { 0, 0.18 }
                rotate 90 * x * rand(Stream)
                translate Place
                pigment { bozo color_map { [0 Colour] [1 rgb 1] } scale 0.1 }
            }
        #break
        #case (2)
            cone { Place, 0.2, Place + 0.4 * y, 0 pigment { Colour } normal { bumps 0.3 } }
        #break
        #else
            mesh {
                #declare Side = 0;
                #while (Side < 24)
                    triangle {
                        Place, Place + 0.2 * vrotate(x, 15 * Side * y),
                        Place + 0.2 * vrotate(x, 15 * (Side + 1) * y) + 0.1 * y
                    }
                    #declare Side = Side + 1;
                #end
                pigment { Colour }
            }
    #end
    #declare Item = Item + 1;
#end
